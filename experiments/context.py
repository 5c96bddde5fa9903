def frame(request): return {}
