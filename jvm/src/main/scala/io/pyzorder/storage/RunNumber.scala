package io.pyzorder.storage

/**
 * Numbers of runs, and of the index's versions, in the names below `_zorder`: 1, 2, … without
 * leading zeros, of at most 18 digits. Any other name is no name of a run: who may write there may
 * give names as they like, and none of them is to break a query or the next run's number.
 */
private[pyzorder] object RunNumber {

  /** The greatest; the run after it has none. */
  val Greatest: Long = 999999999999999999L

  private val Digits = "[1-9][0-9]{0,17}"

  /** The number that these digits are; None: they are none. */
  def of(digits: String): Option[Long] =
    if (digits.matches(Digits)) Some(digits.toLong) else None

  /** The number of the folder of a run, `_7`; None: it is of no run. */
  def ofFolder(name: String): Option[Long] =
    if (name.startsWith("_")) of(name.drop(1)) else None
}
