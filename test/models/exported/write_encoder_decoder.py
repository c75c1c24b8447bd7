"""An encoder and its decoder, as optimum writes them: write_encoder_decoder.py [FOLDER]          needs: optimum-onnx, transformers, torch

T5 of a narrow layer each with random weights. The decoder is one file for both its states: an If takes the branch without a
cache at the first step, when the caches that are fed are empty, and the one with caches after it."""

import pathlib
import shutil
import sys
import tempfile
import warnings

import torch
from optimum.exporters.onnx import onnx_export_from_model
from transformers import T5Config, T5ForConditionalGeneration

OUT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)


def main():
    warnings.simplefilter("ignore")
    torch.manual_seed(1)
    config = T5Config(vocab_size=48, d_model=16, d_kv=8, d_ff=24, num_layers=1, num_decoder_layers=1, num_heads=2, decoder_start_token_id=0,
                      relative_attention_num_buckets=8, feed_forward_proj="gated-gelu", tie_word_embeddings=False)
    model = T5ForConditionalGeneration(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)  # so that tokens differ from step to step
    with tempfile.TemporaryDirectory() as folder:
        onnx_export_from_model(model, pathlib.Path(folder), task="text2text-generation-with-past", do_validation=False)
        shutil.copy(f"{folder}/encoder_model.onnx", OUT / "optimum_encoder.onnx")
        shutil.copy(f"{folder}/decoder_model_merged.onnx", OUT / "optimum_decoder_merged.onnx")


if __name__ == "__main__":
    main()
