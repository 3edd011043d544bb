"""Comparisons with Microsoft's DirectML.dll, which scripts/directml sets up under Wine."""
