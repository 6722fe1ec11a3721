package io.pyzorder.common

/**
 * Checks the times in files that anyone with write access to the table's folder can forge. A time
 * is valid if its year is at most 9999 in every time zone. Other times may overflow, or be invalid
 * in Python.
 */
private[pyzorder] object RecordedTime {

  private val Day = 86400000L

  /** The start of 9999-12-31 in UTC, in milliseconds since the epoch. */
  private val Limit = 253402214400000L

  /** @param millis milliseconds since the epoch */
  def isValid(millis: Long): Boolean = millis >= 0 && millis < Limit

  /** @param day days since the epoch, in UTC */
  def isValidDay(day: Long): Boolean = day >= 0 && day < Limit / Day
}
