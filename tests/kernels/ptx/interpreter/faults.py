"""What ends the interpretation of a kernel."""


class Fault(Exception):
    """The kernel did what the PTX ISA forbids or leaves undefined."""


class Unsupported(Exception):
    """The PTX has an instruction that this interpreter does not know."""
