# SPDX-License-Identifier: Apache-2.0
"""Models and data sets for tests, demos and benchmarks, made from packages that install by name."""
