package io.pyzorder.publish

/**
 * A process, told apart from every other one that ever runs.
 *
 * @param host    machine, its boot, and the space in which process numbers count
 * @param pid     the process's number
 * @param started when it began, milliseconds since the epoch; -1: not known
 */
final case class ProcessId(host: String, pid: Long, started: Long)
