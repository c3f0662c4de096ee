# SPDX-License-Identifier: Apache-2.0
"""Writes detections.json: boxes, and their mean average precision by COCO's rules in NumPy.

    python tests/golden/detections.py > tests/golden/detections.json      # needs numpy

Written from the description (Lin et al. 2014; cocodataset.org, "Detection evaluation"), another way
than the component: thresholds outside, images inside, precision by interpolation.
"""

import json

import numpy as np

IMAGES, BOXES, FOUND, CLASSES = 12, 5, 14, 3


def overlap(a, b):
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    both = np.prod(np.clip(high - low, 0, None))
    return both / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - both)


def drawn(rng):
    """Boxes on a grid of sixteenths; detections are these moved, of another class, or anywhere."""
    labels = np.full((IMAGES, BOXES, 5), -1.0)
    boxes = np.zeros((IMAGES, FOUND, 4))
    scores = np.round(rng.random((IMAGES, FOUND)) * 64) / 64
    classes = np.full((IMAGES, FOUND), -1.0)
    for i in range(IMAGES):
        for j in range(rng.integers(0, BOXES + 1)):
            corner = rng.integers(0, 128, 2) / 16
            labels[i, j] = [
                rng.integers(CLASSES),
                *corner,
                *(corner + rng.integers(16, 96, 2) / 16),
            ]
        for k in range(rng.integers(0, FOUND + 1)):
            near = labels[i, rng.integers(BOXES)]
            if near[0] < 0:
                near = np.array([rng.integers(CLASSES), 1, 1, 4, 5.0])
            boxes[i, k] = near[1:] + rng.integers(-6, 7, 4) / 16
            classes[i, k] = near[0] if rng.random() < 0.8 else rng.integers(CLASSES)
    return labels, boxes, scores, classes


def precision(labels, boxes, scores, classes, c, threshold, most):
    kept, total = [], 0
    for i in range(IMAGES):
        truth = [row[1:] for row in labels[i] if row[0] == c]
        total += len(truth)
        of_class = [k for k in range(FOUND) if classes[i, k] == c]
        of_class = sorted(of_class, key=lambda k: -scores[i, k])[:most]
        free = set(range(len(truth)))
        for k in of_class:
            fits = {j: overlap(boxes[i, k], truth[j]) for j in free}
            fits = {j: o for j, o in fits.items() if o >= threshold}
            if fits:
                free.remove(max(fits, key=fits.get))
            kept.append((scores[i, k], bool(fits)))
    if total == 0:
        return None
    right = np.cumsum([hit for _, hit in sorted(kept, key=lambda one: -one[0])])
    values = right / np.arange(1, len(right) + 1)
    recalls = right / total
    places = np.linspace(0, 1, 101)
    return np.mean([max(values[recalls >= p], default=0.0) for p in places])


def case(seed, options):
    given = drawn(np.random.default_rng(seed))
    thresholds = np.arange(options.get("from", 0.5), options.get("to", 0.95) + 1e-9, 0.05).round(6)
    most = options.get("max_detections", 100)
    table = [[precision(*given, c, t, most) for t in thresholds] for c in range(CLASSES)]
    names = ("labels", "boxes", "scores", "classes")
    arrays = {name: array.ravel().tolist() for name, array in zip(names, given)}
    value = np.mean([row for row in table if row[0] is not None])
    return {"options": options, "value": value} | arrays


if __name__ == "__main__":
    cases = [case(1, {}), case(2, {"from": 0.5, "to": 0.5}), case(3, {"max_detections": 2})]
    shapes = {"images": IMAGES, "boxes": BOXES, "found": FOUND}
    print(
        json.dumps({"source": f"NumPy {np.__version__}, detections.py", **shapes, "cases": cases})
    )
