"""llama.cpp's own server on 127.0.0.1, with a window of 8,192 tokens.

python cpp_server.py MODEL TEMPLATE PORT
"""

import sys
import threading

import xllamacpp

model, template, port = sys.argv[1:]
settings = xllamacpp.CommonParams()
settings.model.path = model
with open(template, encoding="utf-8") as file:
    settings.chat_template = file.read()
settings.use_jinja = True
settings.hostnames = ["127.0.0.1"]
settings.port = int(port)
settings.n_ctx = 8192
settings.n_parallel = 1
settings.n_predict = 200
settings.cpuparams.n_threads = 2
settings.warmup = False
settings.fit_params = False
# It serves for as long as this value lives.
server = xllamacpp.Server(settings)
threading.Event().wait()
