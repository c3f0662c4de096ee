# SPDX-License-Identifier: Apache-2.0
"""Tones, notes, clips and files with known answers, for tasks.py. Seeds are fixed."""

import functools
import os
import pathlib
import wave

import numpy as np

SPEECH = pathlib.Path("/usr/share/asterisk/sounds/en_US_f_Allison")  # asterisk-core-sounds-en-wav
PLACES = ("/usr/lib/python3", "/usr/include", "/usr/share", "/usr/lib")
# what a file's ending says it is, as magika names it
ENDINGS = {
    ".py": {"python"},
    ".h": {"c", "cpp", "h", "hpp"},
    ".html": {"html"},
    ".json": {"json"},
    ".xml": {"xml"},
    ".svg": {"svg"},
    ".png": {"png"},
    ".gz": {"gzip"},
    ".pl": {"perl"},
    ".pm": {"perl"},
    ".sh": {"shell"},
    ".js": {"javascript"},
    ".css": {"css"},
    ".ttf": {"ttf"},
    ".so": {"elf"},
    ".cmake": {"cmake"},
    ".deb": {"deb"},
    ".zip": {"zip"},
}


def tone(hertz: float, seconds: float, rate: int, seed: int, noise: float = 0.005) -> np.ndarray:
    """Six harmonics and some noise, float32."""
    random = np.random.default_rng(seed)
    time = np.arange(int(seconds * rate)) / rate
    phases = random.uniform(0, 2 * np.pi, 6)
    wave_ = sum(np.sin(2 * np.pi * hertz * k * time + phases[k - 1]) / k for k in range(1, 7))
    return (0.1 * wave_ + noise * random.standard_normal(time.size)).astype(np.float32)


def note(midi: int, samples: int, rate: int) -> np.ndarray:
    """A struck note from a fourth of the clip on, dying away."""
    begin = samples // 4
    time = np.arange(samples - begin) / rate
    hertz = 440 * 2 ** ((midi - 69) / 12)
    sound = sum(np.sin(2 * np.pi * hertz * k * time) / k for k in range(1, 6))
    made = np.zeros(samples, np.float32)
    made[begin:] = 0.3 * sound * np.exp(-1.5 * time)
    return made


def doubled(clip: np.ndarray) -> np.ndarray:
    """The same sound at twice the rate: zeros above its spectrum."""
    return np.fft.irfft(np.fft.rfft(clip), 2 * clip.size).astype(np.float32) * 2


def spoken(folder: pathlib.Path, count: int = 20) -> list[np.ndarray]:
    """Prompts of one second or more, 16 kHz; the same ones on every machine."""
    clips = []
    for path in sorted(folder.glob("*.wav")):
        with wave.open(str(path)) as file:
            if file.getframerate() == 8000 and 8000 <= file.getnframes() <= 80000:
                clips.append((path, file.getnframes()))
    chosen = clips[:: max(1, len(clips) // count)][:count]
    out = []
    for path, frames in chosen:
        with wave.open(str(path)) as file:
            out.append(np.frombuffer(file.readframes(frames), np.int16) / np.float32(32768))
    return [doubled(clip) for clip in out]


@functools.cache
def files_by_kind(count: int = 256) -> list[tuple[pathlib.Path, set[str]]]:
    """Files whose ending says what they are, as many of each kind as there are, in turn."""
    found: dict[str, list[pathlib.Path]] = {ending: [] for ending in ENDINGS}
    for place in PLACES:
        for folder, folders, names in os.walk(place):
            folders.sort()
            for name in sorted(names):
                kept = found.get(os.path.splitext(name)[1])
                if kept is None or len(kept) >= count // 8:
                    continue
                path = pathlib.Path(folder) / name
                if not path.is_symlink() and path.stat().st_size >= 512:
                    kept.append(path)
    turns = [
        (paths[turn], ENDINGS[ending])
        for turn in range(count)
        for ending, paths in found.items()
        if turn < len(paths)
    ]
    return turns[:count]


def magika_bytes(path: pathlib.Path) -> np.ndarray:
    """The first and the last 1,024 bytes without blanks around them; 256 where there are none."""
    data = path.read_bytes()
    first = np.frombuffer(data[:4096].lstrip()[:1024], np.uint8)
    last = np.frombuffer(data[-4096:].rstrip()[-1024:], np.uint8)
    out = np.full((1, 2048), 256, np.int32)
    out[0, : first.size] = first
    out[0, 2048 - last.size :] = last
    return out
