# SPDX-License-Identifier: Apache-2.0
"""Quantizes a model with a peer's own quantizer, to ONNX with QuantizeLinear/DequantizeLinear.

  peer_quantize.py MODEL OUT --with onnxruntime|nncf --data FILE.npz [--samples N]

onnxruntime: static, per-channel int8 weights, uint8 activations, its default node list; --operators
writes 8-bit operators of ONNX and of its own domain (QLinearConv, com.microsoft.QLinearAdd ...).
nncf: OpenVINO's quantizer, default preset; --transformer picks its transformer settings.
"""

import argparse
import os
import pathlib
import sys
import tempfile

import onnx
import peer_rows


def with_onnxruntime(args, target: str) -> None:
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory() as folder:
        prepared = str(pathlib.Path(folder) / "prepared.onnx")
        quant_pre_process(args.model, prepared, skip_symbolic_shape=True)
        names = peer_rows.input_names(args.model)
        form = quantization.QuantFormat
        quantization.quantize_static(
            prepared,
            target,
            peer_rows.Rows(args.data, names, args.samples, args.batch),
            quant_format=form.QOperator if args.operators else form.QDQ,
            per_channel=True,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )


def with_nncf(args, target: str) -> None:
    import nncf

    rows = peer_rows.Rows(args.data, peer_rows.input_names(args.model), args.samples, args.batch)
    batches = list(iter(rows.get_next, None))
    options = {"subset_size": len(batches)}
    if args.transformer:
        options["model_type"] = nncf.ModelType.TRANSFORMER
    onnx.save(nncf.quantize(onnx.load(args.model), nncf.Dataset(batches), **options), target)


QUANTIZERS = {"onnxruntime": with_onnxruntime, "nncf": with_nncf}


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="peer_quantize.py", description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--with", dest="quantizer", choices=sorted(QUANTIZERS), required=True)
    parser.add_argument("--data", required=True, metavar="FILE.npz")
    parser.add_argument("--samples", type=int, default=64, help="first rows only; 0 for all")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--transformer", action="store_true")
    parser.add_argument("--operators", action="store_true", help="8-bit operators, not QDQ")
    args = parser.parse_args(argv)
    target = f"{args.out}.{os.getpid()}.tmp"
    try:
        QUANTIZERS[args.quantizer](args, target)
        os.replace(target, args.out)
    except (OSError, KeyError, ValueError, RuntimeError, ImportError) as error:
        print(f"peer_quantize: {error!r}", file=sys.stderr)
        pathlib.Path(target).unlink(missing_ok=True)
        return 1
    print(args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
