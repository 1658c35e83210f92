"""Log-softmax over a vocabulary and the loss of one target a row: integer inputs, one number a row."""
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn as nn

ROWS = 8192
VOCAB = 32768


class Model(nn.Module):
    def forward(self, logits, target):
        log_p = torch.log_softmax(logits, dim=-1)
        return -log_p.gather(1, target.unsqueeze(1)).squeeze(1)


def get_inputs():
    return [torch.randn(ROWS, VOCAB) * 2.0, torch.randint(0, VOCAB, (ROWS,))]


def get_init_inputs():
    return []
