"""What a package that brings a transfer backend imports: the port, and how a backend is declared."""

from brokerage.transfers.choice import declare_backend
from brokerage.transfers.port import Backend, CopyOrder, CopyReport, FileFault, NotRemovable, Refusal, StoredCopy
