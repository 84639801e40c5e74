"""The local pilot: holds a slot of a computing queue, asks the server for jobs over HTTP and runs them.

Standard library only, and nothing of the rest of the project: this folder could be copied to a worker node as it is. It needs
Linux (prctl, /proc).
"""
