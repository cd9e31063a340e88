//! Programs: the tools that schedlab needs, and programs that strangers name or bring.
