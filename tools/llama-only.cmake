# Read by llama.cpp's project() when llama-cpp-python is built (see LLAMA_CMAKE in the Makefile).
# The embedder calls libllama and ggml alone; llama.cpp's `common` library would double the build time.
# A plain variable shadows the cache entry that llama-cpp-python forces to ON.
set(LLAMA_BUILD_COMMON OFF)
