"""The device that targets run on."""

import adapters

import vkops


def opened(**options):
    """A device on the adapter under test."""
    return vkops.Device(adapters.wanted()[0].index, **options)
