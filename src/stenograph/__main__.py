import sys

from stenograph.cli import main

sys.exit(main())
