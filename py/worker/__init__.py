"""The trusted worker: seeds, inputs, weights, references, comparison. docs/worker.md is its contract."""
