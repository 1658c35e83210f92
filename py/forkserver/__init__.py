"""A process with torch loaded whose forks become the boxed runners of torch candidates (docs/torch.md)."""
