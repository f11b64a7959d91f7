"""Kernels that listen on sockets of their own folder.

Jupyter picks ports that are free and gives them to a kernel, which listens a second later: in the meantime a server of
another test may have been given one of them, and the kernel dies.
"""

import os
import tempfile

from jupyter_client.manager import KernelManager


class SocketKernelManager(KernelManager):
    def __init__(self, **options):
        folder = tempfile.mkdtemp(dir=os.environ["XDG_STATE_HOME"])
        super().__init__(transport="ipc", connection_file=f"{folder}/kernel.json", **options)
