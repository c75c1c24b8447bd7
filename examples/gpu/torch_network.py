"""A network of PyTorch's as a library, called from PyTorch: on its tensors, on its streams, in its graphs.

    torch_network.py [--network resnet18] [--target "cuda -arch=sm_90"] [--precision fp32] [--repeat 100]

Runs on PyTorch's GPU where it has one, else on its CPU; what needs a GPU is left out there. --network names one of torchvision's
ResNets; "small" is a network of a few layers, for which torchvision is not needed.

1. a picture's bytes -> floats -> network -> the three likeliest classes, all on the current stream, without a copy
2. the network without its last layer as an extractor of features, which a layer of PyTorch's reads
3. two networks on two streams, and the mean of what they say
4. all of the first inside a torch.cuda.graph of the caller's
5. the same library on each GPU that there is
"""

import argparse
import pathlib
import statistics
import tempfile
import time
import warnings

import torch

import tenon
from tenon import te


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        wide = torch.nn.Conv2d(3, 16, 3, stride=2, padding=1), torch.nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.body = torch.nn.Sequential(wide[0], torch.nn.ReLU(), wide[1], torch.nn.ReLU())
        self.fc = torch.nn.Linear(32, 10)

    def forward(self, x):
        return self.fc(self.body(x).mean((2, 3)))


def network(name, seed):
    torch.manual_seed(seed)
    if name == "small":
        return Small().eval()
    import torchvision

    return getattr(torchvision.models, name)(weights=None).eval()


def compiled(model, shape, options, folder, name):
    """The model as a function of tensors, which lie where the target runs."""
    path = folder / f"{name}.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the exporter that needs no other package
        torch.onnx.export(model, (torch.zeros(shape),), str(path), input_names=["x"], output_names=["y"], dynamo=False)
    tenon.compile(path, path.with_suffix(".so"), target=options.target, precision=options.precision)
    return tenon.load(path.with_suffix(".so"))


def preparation(size, target):
    """Bytes of a picture, [height, width, 3], as floats, [1, 3, height, width]: a kernel of ours."""
    picture = te.placeholder((size, size, 3), "uint8", name="picture")
    x = te.compute((1, 3, size, size), lambda n, c, i, j: (picture[i, j, c].astype("float32") - 118.0) * (1 / 58), name="x")
    return tenon.build(te.create_prim_func([picture, x], "prepare"), target=target)


def milliseconds(call, device, repeat):
    """Mean and standard deviation of calls that are waited for one by one."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    times = []
    for i in range(repeat + 10):
        wait()
        start = time.perf_counter()
        call()
        wait()
        if i >= 10:
            times.append((time.perf_counter() - start) * 1e3)
    return f"{statistics.mean(times):.3f} ± {statistics.stdev(times):.3f} ms"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    has_gpu = torch.cuda.is_available()
    parser.add_argument("--network", default="resnet18")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--target", default="cuda -arch=sm_90" if has_gpu else "llvm")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--repeat", type=int, default=100)
    options = parser.parse_args()
    device = torch.device("cuda" if options.target.startswith("cuda") else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    tolerance = 1e-3 if options.precision in ("fp32", "exact") else 3e-2
    shape = (1, 3, options.size, options.size)

    def close(got, wanted):
        torch.testing.assert_close(got.float(), wanted.float(), rtol=tolerance, atol=tolerance * float(wanted.abs().max()))

    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        folder = pathlib.Path(folder)
        models = [network(options.network, seed) for seed in (1, 2)]
        ours = [compiled(m, shape, options, folder, f"network{i}") for i, m in enumerate(models)]
        models = [m.to(device) for m in models]
        prepare = preparation(options.size, options.target)
        picture = torch.randint(0, 256, (options.size, options.size, 3), dtype=torch.uint8, device=device)
        x = torch.empty(shape, device=device)
        classes = models[0](x).shape[1]
        scores = torch.empty((1, classes), device=device)

        def one():
            prepare(picture, x)
            ours[0](x, scores)
            return scores.topk(3)

        likeliest = one()
        wanted = models[0](x)
        close(scores, wanted)
        print(f"1. the likeliest of {classes} classes: {likeliest.indices.tolist()[0]}; {milliseconds(one, device, options.repeat)}, "
              f"the network by PyTorch {milliseconds(lambda: models[0](x), device, options.repeat)}")

        last, features = models[0].fc, network(options.network, 1)
        features.fc = torch.nn.Identity()
        extract = compiled(features, shape, options, folder, "features")
        found = torch.as_tensor(extract(x))
        close(last(found), wanted)
        print(f"2. {found.shape[1]} features, and PyTorch's last layer on them")

        if device.type == "cuda":
            streams, both = [torch.cuda.Stream() for _ in ours], [torch.empty_like(scores) for _ in ours]

            def ensemble():
                here = torch.cuda.current_stream()
                for stream, function, out in zip(streams, ours, both):
                    stream.wait_stream(here)
                    with torch.cuda.stream(stream):
                        function(x, out)
                    here.wait_stream(stream)
                return (both[0] + both[1]) / 2

            close(ensemble(), (models[0](x) + models[1](x)) / 2)
            print(f"3. two networks on two streams: {milliseconds(ensemble, device, options.repeat)}")

            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):  # calls before it have brought code, weights and memory
                prepare(picture, x)
                ours[0](x, scores)
                top = scores.topk(3)
            scores.zero_()
            graph.replay()
            close(scores, wanted)
            assert torch.equal(top.indices, likeliest.indices)
            print(f"4. in a graph of the caller's: {milliseconds(graph.replay, device, options.repeat)}")

            for i in range(torch.cuda.device_count()):
                with torch.cuda.device(i):
                    there, out = x.to(f"cuda:{i}"), torch.empty((1, classes), device=f"cuda:{i}")
                    ours[0](there, out)
                    close(out.to(device), wanted)
            print(f"5. on {torch.cuda.device_count()} GPU(s)")


if __name__ == "__main__":
    main()
