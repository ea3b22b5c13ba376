"""Modules that the code wrote itself, into files in memory: `import helper` finds helper.py."""

import sys
from importlib.machinery import ModuleSpec

import places


class WrittenModules:
    """A finder for sys.meta_path, and the loader of what it finds."""

    def find_spec(self, name, path=None, target=None):
        stem = name.rpartition(".")[2]
        folders = path if path is not None else ["", *sys.path]
        for folder in folders:
            base = f"{folder}/{stem}" if folder else stem
            for file, package in ((f"{base}/__init__.py", True), (f"{base}.py", False)):
                if places.wrote(file):
                    spec = ModuleSpec(name, self, origin=file, is_package=package)
                    spec.has_location = True
                    if package:
                        spec.submodule_search_locations.append(base)
                    return spec
        return None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        file = module.__spec__.origin
        with places.tree.open(file, "rb") as source:
            code = compile(source.read(), file, "exec", dont_inherit=True)
        exec(code, module.__dict__)

    def get_source(self, name):
        with places.tree.open(sys.modules[name].__spec__.origin) as source:
            return source.read()

    def invalidate_caches(self):
        """Nothing is kept."""
