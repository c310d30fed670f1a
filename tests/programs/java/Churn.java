// SPDX-License-Identifier: Apache-2.0
// Classes made, used and thrown away, so that one has the place of another before: Churn$Body as often as wanted, each
// under a name and a loader of its own. Writes to a file which one worked when, "FROM UNTIL CLASS" in ns by
// CLOCK_MONOTONIC; says at the end how many the collector has unloaded. Arguments: seconds, classes a minute, file.
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.function.IntUnaryOperator;

public class Churn {
	public static class Body_00000 implements IntUnaryOperator {
		static int work(int s) {
			for (int i = 0; i < 1000; i++)
				s = s * 31 + (i ^ s >>> 7);
			return s;
		}

		public int applyAsInt(int s) {
			return work(s) + 1;
		}
	}

	static class Loader extends ClassLoader {
		Loader() {
			super(Churn.class.getClassLoader());
		}

		Class<?> define(byte[] bytes) {
			return defineClass(null, bytes, 0, bytes.length);
		}
	}

	private static final String NAME = "Body_00000";

	static byte[] template() throws Exception {
		ByteArrayOutputStream bytes = new ByteArrayOutputStream();
		try (InputStream in = Churn.class.getResourceAsStream("Churn$" + NAME + ".class")) {
			for (int next; (next = in.read()) >= 0;)
				bytes.write(next);
		}
		return bytes.toByteArray();
	}

	// The same class under another name of the same length.
	static byte[] renamed(byte[] template, String name) {
		byte[] bytes = template.clone(), old = NAME.getBytes(StandardCharsets.US_ASCII);
		byte[] with = name.getBytes(StandardCharsets.US_ASCII);
		for (int at = 0; at + old.length <= bytes.length; at++) {
			int same = 0;
			while (same < old.length && template[at + same] == old[same])
				same++;
			if (same == old.length)
				System.arraycopy(with, 0, bytes, at, with.length);
		}
		return bytes;
	}

	static int use(IntUnaryOperator body, int s, long end) {
		do {
			for (int i = 0; i < 20; i++)
				s = body.applyAsInt(s);
		} while (System.nanoTime() < end);
		return s;
	}

	public static void main(String[] arguments) throws Exception {
		long start = System.nanoTime(), end = start + Long.parseLong(arguments[0]) * 1000000000L;
		long each = 60000000000L / Long.parseLong(arguments[1]);
		byte[] template = template();
		int s = 1, number = 0;
		try (PrintStream log = new PrintStream(arguments[2], "US-ASCII")) {
			while (System.nanoTime() < end) {
				String name = String.format("Body_%05d", ++number);
				Class<?> made = new Loader().define(renamed(template, name));
				IntUnaryOperator body = (IntUnaryOperator) made.getDeclaredConstructor().newInstance();
				long from = System.nanoTime();
				s = use(body, s, start + number * each);
				log.println(from + " " + System.nanoTime() + " " + made.getName());
				if (number % 200 == 0)
					System.gc();
			}
		}
		System.out.println("unloaded " + ManagementFactory.getClassLoadingMXBean().getUnloadedClassCount() + " of " + number);
		System.out.println(s);
	}
}
