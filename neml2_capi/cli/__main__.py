"""python -m neml2_capi.cli: the command neml2-capi if scripts are not on the path."""

from neml2_capi.cli import main

main()
