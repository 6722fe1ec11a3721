package io.pyzorder.skipping.predicate

import java.time.ZoneId
import java.time.zone.{ZoneOffsetTransition, ZoneRules}
import java.util.Arrays
import java.util.concurrent.{ConcurrentHashMap, TimeUnit}

import scala.jdk.CollectionConverters._

/**
 * The instants, in microseconds, at which a time zone's clocks were set back past midnight and a
 * local day was repeated.
 *
 * The local day of an instant is the day of instant + offset. Between two transitions, the offset
 * is constant, so days are in order. A forward transition skips local times and at most one day. A
 * backward transition repeats local times. It repeats a day if and only if the last local time
 * before the transition is on a later day than the first local time after it.
 *
 * @param repeated the instants, sorted
 * @param from     the instant after which a day may be repeated every year
 */
final class DstDayRepeats private (repeated: Array[Long], from: Long) {

  /** Whether no day is repeated between the instants `first` and `last`, in microseconds. */
  def inOrder(first: Long, last: Long): Boolean = first == last || last < from && {
    val found = Arrays.binarySearch(repeated, first)
    val next = if (found >= 0) found + 1 else -found - 1 // the first instant after `first`
    next == repeated.length || repeated(next) > last
  }
}

object DstDayRepeats {

  private val AnyYear = 2000

  private val known = new ConcurrentHashMap[ZoneId, DstDayRepeats]()

  /** The repeated days of a zone. They are computed once for each zone. */
  def of(zone: ZoneId): DstDayRepeats = known.computeIfAbsent(zone, z => of(z.getRules))

  private[predicate] def of(rules: ZoneRules): DstDayRepeats = {
    val past = rules.getTransitions.asScala
    // The rules for all future years. From year to year, their transitions differ only in the date.
    val yearly = rules.getTransitionRules.asScala.map(_.createTransition(AnyYear))
    val from =
      if (yearly.exists(repeatsDay)) past.lastOption.map(microsOf).getOrElse(Long.MinValue)
      else Long.MaxValue
    new DstDayRepeats(past.filter(repeatsDay).map(microsOf).toArray, from)
  }

  private def microsOf(transition: ZoneOffsetTransition): Long =
    TimeUnit.SECONDS.toMicros(transition.getInstant.getEpochSecond)

  private def repeatsDay(transition: ZoneOffsetTransition): Boolean =
    transition.getDateTimeBefore.minusNanos(1).toLocalDate
      .isAfter(transition.getDateTimeAfter.toLocalDate)
}
