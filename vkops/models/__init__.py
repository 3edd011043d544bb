"""Models in DxDispatch's JSON format, and the kinds of dispatchables that they can name.

``operator``, ``onnx`` and ``shader`` have one class each, with the methods of ``Dispatchable``.
``model_reader`` reads a model, and ``Execution`` runs its dispatches on a target: a device
or arrays.
"""
