"""A decoder as the model builder of onnxruntime-genai writes it: write_decoder.py [FOLDER]
needs: onnxruntime-genai, transformers, torch, onnx, onnx_ir

Llama of two narrow layers with random weights: MatMulNBits of 4 bits, GroupQueryAttention with a cache,
SkipSimplifiedLayerNormalization. Of the accuracies that MatMulNBits may ask for it takes the one whose sums are of floats:
those of bytes differ by per cents, and what random weights say next changes with that."""

import pathlib
import subprocess
import sys
import tempfile

import onnx
import torch
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

OUT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
WORDS = 64


def main():
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=WORDS, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                         head_dim=16, max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0)
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.5)  # so that tokens differ from step to step
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(f"{folder}/hf")
        tokenizer = Tokenizer(models.WordLevel({f"w{i}": i for i in range(WORDS)}, unk_token="w0"))
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="w1", eos_token="w2", pad_token="w0").save_pretrained(f"{folder}/hf")
        subprocess.run([sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", f"{folder}/hf", "-o", f"{folder}/out", "-p", "int4", "-e", "cpu",
                        "-c", f"{folder}/cache", "--extra_options", "block_size=16", "accuracy_level=1"], check=True, stdout=subprocess.DEVNULL)
        onnx.save(onnx.load(f"{folder}/out/model.onnx"), OUT / "genai_decoder.onnx")


if __name__ == "__main__":
    main()
