"""The commands of a published CUDA-Agent work folder, answered by the examiner. Frozen."""
