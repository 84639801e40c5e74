"""`python -m broker_site.roof.conformance FILE...`: the same as the operator command, without Django."""

import sys

from broker_site.roof.conformance.runner import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
