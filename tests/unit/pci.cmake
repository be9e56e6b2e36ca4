# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# PCI functions, what uses them and how they change drivers, on a made-up machine; IOVAs over a made-up IOMMU.
doorbell_test(pci_test unit ${CMAKE_CURRENT_LIST_DIR}/pci_test.cpp)
doorbell_test(pci_binding_test unit ${CMAKE_CURRENT_LIST_DIR}/pci_binding_test.cpp)
doorbell_test(iommu_space_test unit ${CMAKE_CURRENT_LIST_DIR}/iommu_space_test.cpp)
