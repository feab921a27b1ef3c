"""Point kernels: the graphs of an artifact as C, in lanes of material points.

`trace` reads graphs with torch, `folder` writes sources and metadata into an artifact, `build`
compiles them, and `loaded` calls them from Python. See README.md in this folder. Importing this
package imports neither torch nor NEML2.
"""
