#!/usr/bin/env python3
"""Makes the two pictures that ship with the example: printed lines as a scanner sees them.

Needs Pillow, NumPy and Debian's fonts-liberation and fonts-noto-cjk. The pictures are made from a fixed seed.
"""

import pathlib

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

FOLDER = pathlib.Path(__file__).resolve().parent
FONTS = pathlib.Path("/usr/share/fonts")
PICTURES = (
    ("line.png", "Every joint holds", FONTS / "truetype/liberation/LiberationSerif-Regular.ttf", 52),
    ("line_zh.png", "机器学习编译器", FONTS / "opentype/noto/NotoSerifCJK-Bold.ttc", 50),
)
SCALE = 4  # drawn larger and reduced, so that edges are as soft as print
MARGIN = 5


def paper(height, width, random):
    """Off-white, a little uneven in the large and grainy in the small, darker towards one side."""
    coarse = random.normal(0, 3, (height // 16 + 2, width // 16 + 2))
    coarse = np.asarray(Image.fromarray(coarse.astype(np.float32)).resize((width, height), Image.Resampling.BICUBIC))
    shade = np.linspace(0, -9, width)[None, :]
    return 243 + coarse + shade + random.normal(0, 2.5, (height, width))


def picture(text, font_path, size, random):
    font = ImageFont.truetype(str(font_path), size * SCALE)
    left, top, right, bottom = font.getbbox(text)
    width, height = right - left + 2 * MARGIN * SCALE, bottom - top + 2 * MARGIN * SCALE
    ink = Image.new("L", (width, height), 0)
    ImageDraw.Draw(ink).text((MARGIN * SCALE - left, MARGIN * SCALE - top), text, fill=255, font=font)
    ink = ink.rotate(0.4, Image.Resampling.BICUBIC).filter(ImageFilter.GaussianBlur(0.6 * SCALE))
    ink = ink.resize((width // SCALE, height // SCALE), Image.Resampling.BOX)
    cover = np.asarray(ink, dtype=np.float64) / 255
    background = paper(*cover.shape, random)
    grey = background * (1 - cover) + (38 + random.normal(0, 4, cover.shape)) * cover
    tint = np.array([1.0, 0.985, 0.955])  # warm paper: the three planes differ
    return Image.fromarray(np.clip(grey[:, :, None] * tint, 0, 255).astype(np.uint8))


def main():
    random = np.random.default_rng(7)
    for name, text, font, size in PICTURES:
        image = picture(text, font, size, random)
        image.save(FOLDER / name, optimize=True)
        print(f"{name}: {image.width}x{image.height} {text!r}")


if __name__ == "__main__":
    main()
