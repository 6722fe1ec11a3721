package io.pyzorder.publish.relocate

import io.pyzorder.common.ZOrderErrors
import io.pyzorder.storage.TableFolder

/** Why a RESTORE is refused, for every way of publishing. */
private[pyzorder] object RestoreRefusal {

  private[pyzorder] def cannot(folder: TableFolder, why: String): Exception =
    ZOrderErrors.cannotRestore(folder.root.toString, why)

  /** Why a RESTORE without an OPTIMIZE before it is refused. */
  private[pyzorder] val NoneToUndo: String = "no OPTIMIZE has replaced files of it"

  /** Why a second RESTORE in a row is refused where locations are switched. */
  private[publish] val OneAtMost: String = "the last OPTIMIZE was undone already, and where " +
    "locations are switched only one can be"
}
