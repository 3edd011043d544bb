"""Run models and shaders on a device, as the command line does.

``model_execution`` runs a prepared DxDispatch model. ``model_files``, ``onnx_files`` and
``shader_files`` run or check files; a wrong model, file or option raises a ModelError before
anything has run.
"""
