package io.pyzorder.skipping.predicate

import java.time.{LocalDateTime, ZoneId}
import java.time.zone.{ZoneOffsetTransition, ZoneRules}
import java.util.Arrays
import java.util.concurrent.{ConcurrentHashMap, TimeUnit}

import scala.jdk.CollectionConverters._

/**
 * Where a time zone's days do not follow each other: the instants at which its clocks were set back
 * over midnight, in microseconds.
 *
 * The local day of an instant is that of instant + offset. Between two transitions the offset is
 * constant and days follow each other; a transition forward skips local times and at most a day;
 * one back repeats local times, and takes a day back exactly if the last local time before it lies
 * on a later day than the first after it.
 *
 * @param repeated those instants, sorted
 * @param from     after it there may be one each year
 */
final class DstDayRepeats private (repeated: Array[Long], from: Long) {

  /** Whether no day comes twice from one instant to a later one, in microseconds. */
  def inOrder(first: Long, last: Long): Boolean = last < from && {
    val found = Arrays.binarySearch(repeated, first)
    val next = if (found >= 0) found + 1 else -found - 1 // the first one after `first`
    next == repeated.length || repeated(next) > last
  }
}

object DstDayRepeats {

  private val known = new ConcurrentHashMap[ZoneId, DstDayRepeats]()

  /** Those of a zone. */
  def of(zone: ZoneId): DstDayRepeats = known.computeIfAbsent(zone, z => of(z.getRules))

  private def of(rules: ZoneRules): DstDayRepeats = {
    val past = rules.getTransitions.asScala
    // Rules for every year to come; they are the same each year, but for the date.
    val year = past.lastOption.map(_.getDateTimeAfter).getOrElse(LocalDateTime.MIN).getYear + 1
    val yearly = rules.getTransitionRules.asScala.map(_.createTransition(year))
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
