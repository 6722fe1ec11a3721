package io.pyzorder.common

import java.nio.file.Paths
import java.util.jar.JarFile

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

/**
 * Loads all of pyzorder's classes, and the error messages in its jar, in advance. When a client of
 * the Thrift server disconnects, Hive closes the session's class loader, which contains the jars
 * from `--jars` and `spark.jars`. Classes that are already loaded keep working, but no others can
 * be loaded. If pyzorder then needed a class that had not been loaded yet, all later queries on the
 * server would fail. Loading classes in advance does not help code that reads the class files
 * themselves. Spark reads class files to clean closures; see TaskFunction.
 */
private[pyzorder] object EagerClasses {

  private val log = LoggerFactory.getLogger("pyzorder")

  /**
   * Loads the classes once per JVM. Does nothing if the jar is on the class path, because the
   * system class loader is never closed.
   */
  def load(): Unit = loaded

  private lazy val loaded: Unit = {
    val loader = getClass.getClassLoader
    if (loader != null && loader != ClassLoader.getSystemClassLoader) {
      try {
        val location = getClass.getProtectionDomain.getCodeSource.getLocation.toURI
        val jar = new JarFile(Paths.get(location).toFile)
        try jar.entries().asScala.map(_.getName).filter(_.endsWith(".class"))
            .foreach(load(_, loader))
        finally jar.close()
        ErrorConditions.load()
      } catch {
        case NonFatal(failure) => warn(failure)
      }
    }
  }

  /** Loads one class. Logs a warning if a library that the class needs, such as ORC, is missing. */
  private def load(entry: String, loader: ClassLoader): Unit =
    try Class.forName(entry.stripSuffix(".class").replace('/', '.'), false, loader)
    catch { case failure: LinkageError => warn(failure) }

  private def warn(failure: Throwable): Unit =
    log.warn(
      "pyzorder could not load all of its classes in advance. On a Thrift server, put the jar on " +
        "the driver's class path (--driver-class-path), because queries may otherwise fail after " +
        s"a client has disconnected: $failure")
}
