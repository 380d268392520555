# SPDX-License-Identifier: Apache-2.0
"""What tests/bench/run is made of; see README.md beside it."""
