package io.pyzorder.storage

/**
 * The run numbers and index versions that occur in names below `_zorder`. They are 1, 2, …, with at
 * most 18 digits and no leading zeros. Names with any other number are ignored, because anyone with
 * write access can create files with arbitrary names, and such files must not break a query or the
 * numbering of runs.
 */
private[pyzorder] object RunNumber {

  /** The greatest run number. No further run is possible after it. */
  val Greatest: Long = 999999999999999999L

  private val Digits = "[1-9][0-9]{0,17}"

  /** Parses a number. Returns None if `digits` is not a valid number. */
  def of(digits: String): Option[Long] =
    if (digits.matches(Digits)) Some(digits.toLong) else None

  /** The run number of a folder such as `_7`; None if the name is not that of a run's folder. */
  def ofFolder(name: String): Option[Long] =
    if (name.startsWith("_")) of(name.drop(1)) else None
}
