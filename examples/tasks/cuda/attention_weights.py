"""Scaled scores of queries and keys, and their softmax."""
# SPDX-License-Identifier: Apache-2.0
import math

import torch
import torch.nn as nn

HEADS = 128
T = 1024
D = 64


class Model(nn.Module):
    def forward(self, q, k):
        scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])
        return torch.softmax(scores, dim=-1)


def get_inputs():
    return [torch.randn(HEADS, T, D), torch.randn(HEADS, T, D)]


def get_init_inputs():
    return []
