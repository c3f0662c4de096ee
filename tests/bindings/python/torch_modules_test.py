# SPDX-License-Identifier: Apache-2.0
"""Modules of PyTorch as models: the same figures, and the same training."""

import re

import numpy as np
import onnx
import pytest
import tenon as tn
from onnx import TensorProto, helper
from tenon import nn, torch_modules


def exported():
    """As PyTorch's exporter writes it: Dropout in training mode, names of sizes of its own."""
    rng = np.random.default_rng(0)
    weight = onnx.numpy_helper.from_array(rng.standard_normal((4, 3)).astype("f"), "fc.weight")
    ratio = onnx.numpy_helper.from_array(np.array(0.5, "f"), "ratio")
    mode = onnx.numpy_helper.from_array(np.array(True), "mode")
    nodes = [
        helper.make_node("Dropout", ["x", "ratio", "mode"], ["kept"]),
        helper.make_node("MatMul", ["kept", "fc.weight"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["s77", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["s77", 3])
    graph = helper.make_graph(nodes, "module", [x], [y], [weight, ratio, mode])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def test_what_is_exported_is_a_model_for_inference_that_can_be_trained(tmp_path):
    model = torch_modules.loaded(exported(), {"x": nn.Input(("N", 4))})
    assert model.inputs[0].shape == ("N", 4)
    weight = np.asarray(model.constants()["fc.weight"])
    x = np.random.default_rng(1).standard_normal((6, 4)).astype("f")
    np.testing.assert_allclose(model.compile()(x)[0], x @ weight, atol=1e-5)
    np.savez(tmp_path / "data.npz", x=x, label=np.arange(6) % 3)
    losses = []
    watch = tn.callback(step=lambda point: losses.append(point["loss"]))
    tn.train(model, tn.data.npz(tmp_path / "data.npz"), epochs=3, batch=6, shuffle=False,
             optimizer=tn.optim.sgd(lr=0.0), callbacks=[watch])  # fmt: skip
    assert len(set(losses)) == 3  # nothing but the mask of dropout changes


def test_a_file_says_what_is_trained_and_what_is_detached(tmp_path):
    proto = exported()
    gain = onnx.numpy_helper.from_array(np.array(2, "f"), "gain")
    proto.graph.initializer.append(gain)
    proto.graph.node[1].output[0] = "product"
    proto.graph.node.extend(
        [
            helper.make_node("Identity", ["product"], ["held"]),
            helper.make_node("Mul", ["held", "gain"], ["y"]),
        ]
    )
    cut = proto.graph.node[2].metadata_props.add()
    cut.key, cut.value = "namespace", ": Net/detach: aten.detach.default"
    inputs = {"x": nn.Input(("N", 4))}
    model = torch_modules.loaded(proto, inputs, {"gain"})
    assert list(model.parameters()) == ["gain"] and count_of("tenon:StopGradient", model) == 1
    model.save(tmp_path / "model.onnx")
    assert list(tn.load(tmp_path / "model.onnx").parameters()) == ["gain"]
    both = torch_modules.loaded(proto, inputs, {"gain", "fc.weight"})
    data = {"x": np.ones((4, 4), "f"), "label": np.arange(4) % 3}
    assert "fc.weight" in both.parameters()
    trained = tn.train(both, data, rate=1.0).parameters()
    np.testing.assert_array_equal(trained["fc.weight"], both.parameters()["fc.weight"])
    assert trained["gain"] != 2  # a scalar


def test_numbers_of_the_program_are_not_trained(tmp_path):
    """The scale of scores, as PyTorch's exporter writes it: a Constant node of rank 1. Paddle's
    exporter writes weights as such nodes."""
    rng = np.random.default_rng(0)
    numbers = {"scale": np.array([0.5], "f"), "w": rng.standard_normal((4, 3)).astype("f")}
    nodes = [
        helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(value))
        for name, value in numbers.items()
    ]
    nodes.append(helper.make_node("Mul", ["x", "scale"], ["scaled"]))
    nodes.append(helper.make_node("MatMul", ["scaled", "w"], ["y"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])
    graph = helper.make_graph(nodes, "module", [x], [y])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    for path in (tmp_path / "exported.onnx", tmp_path / "saved.onnx"):
        if path.name == "exported.onnx":
            onnx.save(made, path)
        else:
            tn.load(tmp_path / "exported.onnx").save(path)
        model = tn.load(path)
        data = {"x": rng.standard_normal((6, 4)).astype("f"), "label": np.arange(6) % 3}
        after = tn.train(model, data, batch=6, optimizer=tn.optim.sgd(lr=0.1)).constants()
        np.testing.assert_array_equal(np.asarray(after["scale"]), numbers["scale"])
        assert not np.array_equal(np.asarray(after["w"]), numbers["w"])


@pytest.mark.parametrize("inside", [False, True])
def test_random_numbers_are_refused(inside):
    model = exported()
    graph = model.graph
    if inside:
        body = helper.make_graph([], "body", [], [])
        graph.node.append(helper.make_node("If", ["mode"], [], then_branch=body, else_branch=body))
        graph = graph.node[-1].attribute[1].g
    graph.node.append(helper.make_node("RandomUniformLike", ["x"], ["noise"], name="node_rand"))
    with pytest.raises(ValueError, match=r"nn.from_torch: .*got RandomUniformLike \(node_rand\)"):
        torch_modules.loaded(model, {"x": nn.Input(("N", 4))})


def test_what_stands_for_a_size_is_no_other_size():
    inputs = {"x": nn.Input(("N", 64, "L", 128)), "y": nn.Input(("L", 96, "M"))}
    sizes = torch_modules._free_sizes(inputs, {160})
    assert list(sizes) == ["N", "L", "M"] and len(set(sizes.values())) == 3
    assert not set(sizes.values()) & {64, 96, 128, 160} and min(sizes.values()) >= 64


@pytest.fixture(scope="module")
def torch():
    pytest.importorskip("onnxscript", reason="onnxscript, which PyTorch exports with, is missing")
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def network(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(1, 4, 3, padding=1, bias=False)
            self.bn, self.drop = torch.nn.BatchNorm2d(4), torch.nn.Dropout(0.0)
            self.block = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.LayerNorm(8))
            self.fc = torch.nn.Linear(8, 5)

        def forward(self, image):
            x = self.bn(self.conv(image)).relu().mean((2, 3))
            return self.fc(torch.nn.functional.gelu(self.block(self.drop(x))))

    torch.manual_seed(0)
    return Net()


def test_a_module_goes_on_training_as_in_pytorch(torch, tmp_path):
    net = network(torch).train()
    model = nn.from_torch(net, {"image": ("N", 1, 8, 8)})
    assert net.training and net.drop.training and net.bn.training
    assert set(net.state_dict()) - {"bn.num_batches_tracked"} <= set(model.constants())
    rng = np.random.default_rng(0)
    image, label = rng.standard_normal((40, 1, 8, 8)).astype("f"), rng.integers(0, 5, 40)
    made = model.compile()(image)[0]
    np.testing.assert_allclose(
        made, net.eval()(torch.from_numpy(image)).detach().numpy(), atol=1e-5
    )
    np.savez(tmp_path / "data.npz", image=image, label=label)
    losses, wanted = [], []
    optimizer = torch.optim.SGD(net.train().parameters(), 0.1, 0.9)
    for _ in range(6):
        for rows in (slice(0, 20), slice(20, 40)):
            scores = net(torch.from_numpy(image[rows]))
            loss = torch.nn.functional.cross_entropy(scores, torch.from_numpy(label[rows]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            wanted.append(loss.item())
    trained = tn.train(
        model, tn.data.npz(tmp_path / "data.npz"), epochs=6, batch=20, shuffle=False,
        optimizer=tn.optim.sgd(lr=0.1, momentum=0.9),
        callbacks=[tn.callback(step=lambda point: losses.append(point["loss"]))],
    )  # fmt: skip
    np.testing.assert_allclose(losses, wanted, rtol=1e-4)
    again = {name: torch.tensor(np.asarray(x)) for name, x in trained.constants().items()}
    back = network(torch)
    back.load_state_dict({k: v for k, v in again.items() if k in back.state_dict()}, strict=False)
    np.testing.assert_allclose(
        trained.compile()(image)[0],
        back.eval()(torch.from_numpy(image)).detach().numpy(), atol=1e-4,
    )  # fmt: skip


def count_of(op, model):
    return len(re.findall(rf"= (?:onnx\.)?{op}", model.text()))


KINDS = ["Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_of_another_kind_is_named_and_does_nothing(torch, kind):
    drop = getattr(torch.nn, kind)(0.5)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), drop, torch.nn.Dropout(0.5)).train()
    shape = (4, 2, 2, 2, 3) if kind == "Dropout3d" else (4, 2, 2, 3)
    shape = (4, 2, 3) if kind == "Dropout1d" else shape
    with pytest.warns(UserWarning, match=rf"from_torch: .*left out of training: 1 \({kind}\)"):
        model = nn.from_torch(net, {"x": ("N", *shape[1:])})
    assert all(part.training for part in net.modules())
    assert count_of("Random", model) == 0 and count_of("Dropout", model) == 1
    x = np.random.default_rng(0).standard_normal(shape).astype("f")
    made = model.compile()(x)[0]
    np.testing.assert_allclose(made, net.eval()(torch.from_numpy(x)).detach().numpy(), atol=1e-5)


def test_dropout_inside_of_a_layer_is_named(torch):
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, 0.25, batch_first=True)
    with pytest.warns(UserWarning, match=r"left out of training: self_attn \(MultiheadAttention\)"):
        model = nn.from_torch(layer, {"x": ("N", 5, 8)})
    assert count_of("Dropout", model) == 3
    with pytest.warns(UserWarning, match=r"left out of training: the module itself \(LSTM\)"):
        nn.from_torch(torch.nn.LSTM(3, 4, 2, dropout=0.5), {"x": (5, 1, 3)})


def test_sizes_that_vary_are_large_enough(torch):
    net = torch.nn.Conv1d(1, 4, 7)
    model = nn.from_torch(net, {"x": ("N", 1, "L")})
    assert model.inputs[0].shape == ("N", 1, "L")
    for shape in ((2, 1, 7), (3, 1, 20)):
        x = np.random.default_rng(0).standard_normal(shape).astype("f")
        want = net(torch.from_numpy(x)).detach().numpy()
        np.testing.assert_allclose(model.compile()(x)[0], want, atol=1e-5)


def test_a_size_that_cannot_vary_is_named(torch):
    with pytest.raises(ValueError, match=r"from_torch: .*with 64 for N, 96 for K: ") as failed:
        nn.from_torch(torch.nn.Linear(16, 5), {"x": ("N", "K")})
    assert "give a number instead of K" in str(failed.value)


@pytest.mark.parametrize(
    "forward, remedy",
    [
        ("x * 2 if x.sum() > 0 else x", r"torch\.where or torch\.cond$"),
        ("torch.linalg.cholesky(x)", "compute the same by others, or outside of the module$"),
    ],
)
def test_what_the_exporter_does_not_take_comes_with_a_remedy(torch, forward, remedy):
    made = eval(f"lambda self, x: {forward}", {"torch": torch})
    module = type("Module", (torch.nn.Module,), {"forward": made})()
    with pytest.raises(ValueError, match=remedy):
        nn.from_torch(module, {"x": ("N", 3, 3)})


def test_a_projection_inside_of_an_lstm_is_refused(torch):
    module = torch.nn.Sequential(torch.nn.LSTM(4, 6, proj_size=3))
    with pytest.raises(ValueError, match="0: expected an LSTM without proj_size.* got 3; write"):
        tn.nn.from_torch(module, {"x": (5, "N", 4)})


def test_weights_of_a_module_go_into_a_network_of_layers(torch):
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    own = nn.build(nn.Sequential(nn.Linear(3), tn.relu, nn.Linear(2)), {"x": ("N", 4)})
    x = np.random.default_rng(0).standard_normal((5, 4)).astype("f")
    for weights in (net, net.state_dict(), dict(net.named_parameters())):
        made = nn.load(own, weights).compile()(x)[0]
        np.testing.assert_allclose(made, net(torch.from_numpy(x)).detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("bad", [object(), "0.5", np.array(["a"])])
def test_weights_that_are_no_arrays_are_named(bad):
    own = nn.build(nn.Sequential(nn.Linear(3)), {"x": ("N", 4)})
    with pytest.raises(tn.InvalidArgument, match=r"^nn.load: 0.bias: "):
        nn.load(own, {"0.weight": np.zeros((3, 4), "f"), "0.bias": bad})


def test_what_is_no_module_is_refused(torch):
    with pytest.raises(TypeError, match=r"expected a torch.nn.Module, got Sequential; nn.build"):
        nn.from_torch(nn.Sequential(), {"x": (1,)})
    with pytest.raises(ValueError, match="expected sizes or their names, got None"):
        nn.from_torch(torch.nn.Linear(2, 2), {"x": (None, 2)})


def test_without_pytorch_it_says_so(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ImportError, match="nn.from_torch: expected PyTorch to be installed"):
        nn.from_torch(object(), {"x": (1,)})


def test_a_model_names_no_folder_of_the_machine_that_made_it(tmp_path):
    proto = exported()
    for node in proto.graph.node:
        where = node.metadata_props.add()
        where.key, where.value = (
            "pkg.torch.onnx.stack_trace",
            'File "/folder/of/mine/net.py", line 7',
        )
        scope = node.metadata_props.add()
        scope.key, scope.value = "pkg.torch.onnx.name_scopes", "['', 'fc']"
    torch_modules.loaded(proto, {"x": nn.Input(("N", 4))}).save(tmp_path / "model.onnx")
    written = (tmp_path / "model.onnx").read_bytes()
    assert b"/folder/of/mine" not in written and b"name_scopes" in written


def test_attention_with_a_learned_bias(torch):
    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.bias = (
                torch.nn.Linear(16, 16),
                torch.nn.Parameter(torch.randn(6, 6, 2)),
            )

        def forward(self, x):
            n, length, size = x.shape
            q = self.query(x).view(n, length, 2, 8).transpose(1, 2)
            bias = self.bias.permute(2, 0, 1).contiguous()[None]
            y = torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=bias)
            return y.transpose(1, 2).contiguous().reshape(n, length, size)

    module, x = Attention().eval(), torch.randn(2, 6, 16)
    (got,) = nn.from_torch(module, {"x": (2, 6, 16)}).compile()(x.numpy())
    np.testing.assert_allclose(got, module(x).detach(), atol=1e-5)


def test_convolutions_over_volumes_need_no_bias(torch):
    conv = torch.nn.Conv3d
    net = torch.nn.Sequential(
        conv(2, 4, 3, bias=False), conv(4, 4, (1, 2, 2), (1, 2, 1), (0, 1, 0), 1, 2, bias=False)
    )
    x = np.random.default_rng(0).standard_normal((2, 2, 6, 6, 6)).astype("f")
    model = nn.from_torch(net, {"x": ("N", 2, 6, 6, 6)})
    assert list(model.parameters()) == ["0.weight", "1.weight"]
    want = net(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(model.compile()(x)[0], want, atol=1e-5)
