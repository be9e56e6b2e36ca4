// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "module.hpp"

#include <doorbell/error.hpp>

namespace nb = nanobind;

namespace doorbell::python {
namespace {

/// Raises doorbell.Error, the class of python/doorbell/_errors.py.
void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& e) {
    const nb::object type = nb::module_::import_("doorbell._errors").attr("Error");
    const nb::object error = type(e.what(), e.hint().c_str(), static_cast<int>(e.code()));
    PyErr_SetObject(type.ptr(), error.ptr());
  }
}

}  // namespace
}  // namespace doorbell::python

NB_MODULE(_native, m) {
  m.attr("__version__") = DOORBELL_PYTHON_VERSION;
  nb::register_exception_translator(doorbell::python::translate);
  doorbell::python::bind_run(m);
  doorbell::python::bind_blocks(m);
}
