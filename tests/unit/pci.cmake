# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# PCI functions, what uses them and how they change drivers, on a fake machine; IOVAs over a fake IOMMU.
set(here ${CMAKE_CURRENT_LIST_DIR})
doorbell_test(pci_test unit ${here}/pci_test.cpp ${here}/pci_binding_test.cpp ${here}/iommu_space_test.cpp)
