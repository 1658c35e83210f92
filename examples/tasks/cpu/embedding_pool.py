"""Look rows up by number and add them: integer inputs, a table of weights."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

B = 6144
WORDS = 64
VOCAB = 20000
DIM = 64


class Model(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.table = nn.Embedding(vocab, dim)

    def forward(self, words):
        return self.table(words).sum(dim=1)


def get_inputs():
    return [torch.randint(0, VOCAB, (B, WORDS))]


def get_init_inputs():
    return [VOCAB, DIM]
