"""Inputs in a dict, a number beside them: a gated blend of two tensors."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 16384
DIM = 4096


class Model(nn.Module):
    def forward(self, parts, sharpness):
        gate = torch.sigmoid(parts["gate"] * sharpness)
        return gate * parts["left"] + (1.0 - gate) * parts["right"]


def get_inputs():
    parts = {key: torch.randn(ROWS, DIM) for key in ("gate", "left", "right")}
    return [parts, 1.5]


def get_init_inputs():
    return []
