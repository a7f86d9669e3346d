"""llama-cpp-python's server over the library of another package: what that library does not export is missing
until it is called. The arguments are those of `python -m llama_cpp.server`.
"""

import ctypes
import runpy


class Library(ctypes.CDLL):
    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("__"):
                raise

        def missing(*_):
            raise NotImplementedError(f"the library does not export {name}")

        return missing


ctypes.CDLL = Library
runpy.run_module("llama_cpp.server", run_name="__main__", alter_sys=True)
