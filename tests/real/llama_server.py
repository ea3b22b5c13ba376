"""llama_server.py MODEL NAME PORT WINDOW - llama.cpp's server on loopback, until SIGTERM.

Runs under the interpreter that has xllamacpp. While the model is loaded, it answers 503.
"""

import signal
import sys

import xllamacpp


def main(model, name, port, window):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    parameters.model_alias = {name}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = int(port)
    parameters.n_ctx = int(window)
    parameters.n_parallel = 1
    parameters.sampling.temp = 0
    parameters.warmup = False
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    signal.sigwait({signal.SIGTERM})


main(*sys.argv[1:])
