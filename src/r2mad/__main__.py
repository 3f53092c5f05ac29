"""`python -m r2mad` is `r2mad`."""

from r2mad.cli.main import script

if __name__ == "__main__":
    script()
