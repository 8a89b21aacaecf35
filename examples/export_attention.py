"""Export the attention block of this folder from PyTorch: ``attention.onnx`` and its input.

Needs the extra ``torch``. The block computes queries, keys and values in one matrix product and
splits the result into three; the exporter writes that as one Split node.
"""

from pathlib import Path

import numpy as np
import onnx
import torch


class Attention(torch.nn.Module):
    """Multi-head self-attention with one joint projection."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.width, self.heads = width, heads
        self.joint = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        query, key, value = (
            part.view(batch, length, self.heads, self.width // self.heads).transpose(1, 2)
            for part in self.joint(x).split(self.width, dim=-1)
        )
        scores = query @ key.transpose(-2, -1) / (self.width // self.heads) ** 0.5
        mixed = torch.softmax(scores, dim=-1) @ value
        return self.out(mixed.transpose(1, 2).reshape(batch, length, self.width))


def main() -> None:
    folder = Path(__file__).parent
    torch.manual_seed(0)
    block = Attention().eval()
    x = torch.randn(2, 5, 32)
    torch.onnx.export(
        block,
        (x,),
        folder / "attention.onnx",
        input_names=["x"],
        output_names=["y"],
        dynamo=True,
        external_data=False,
        opset_version=18,
        verbose=False,
    )
    strip_traces(folder / "attention.onnx")
    np.save(folder / "attention_x.npy", x.numpy())
    np.save(folder / "attention_y.npy", block(x).detach().numpy())


def strip_traces(path: Path) -> None:
    """Drop what the exporter notes of the machine it ran on."""
    model = onnx.load(path)
    for node in model.graph.node:
        del node.metadata_props[:]
    onnx.save(model, path)


if __name__ == "__main__":
    main()
