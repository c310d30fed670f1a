// SPDX-License-Identifier: Apache-2.0
// Java's shapes of stacks, one after the other until the time is over: each is a method of that name under run().
//	Shapes SECONDS [SHAPE…]
// For Java 8 and newer.
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;
import java.util.zip.CRC32;

public class Shapes {
	interface Turn {
		int turn(int s);

		default int twice(int s) {
			return turn(turn(s));
		}
	}

	abstract static class Base implements Turn {
		abstract int step(int s);

		public int turn(int s) {
			for (int i = 0; i < 50; i++)
				s = step(s);
			return s;
		}
	}

	static class First extends Base {
		int step(int s) {
			return s * 31 + 1;
		}
	}

	static class Second extends Base {
		int step(int s) {
			return s * 33 + 2;
		}
	}

	static class Third extends Base {
		int step(int s) {
			return s * 35 + (s >>> 3);
		}
	}

	static class Trouble extends RuntimeException {
		private static final long serialVersionUID = 1;

		Trouble(String why) {
			super(why);
		}
	}

	private static final int DEEP = 2000;
	private static final Object lock = new Object();
	private static final ReentrantLock park = new ReentrantLock();
	private static int sink;
	private static volatile boolean isOver;

	static int spin(int s, int rounds) {
		for (int i = 0; i < rounds; i++)
			s = s * 31 + (i ^ s >>> 7);
		return s;
	}

	static int down(int s, int depth) {
		return depth == 0 ? spin(s, 20000) : down(s + depth, depth - 1) + 1;
	}

	static void recursion() {
		sink += down(sink, DEEP);
	}

	static int even(int s, int depth) {
		return depth == 0 ? spin(s, 500) : odd(s ^ depth, depth - 1) * 3;
	}

	static int odd(int s, int depth) {
		return depth == 0 ? spin(s, 700) : even(s + depth, depth - 1) * 5;
	}

	static void mutual() {
		for (int i = 0; i < 30; i++)
			sink += even(sink, 40 + i);
	}

	static void lambdas() {
		IntUnaryOperator first = s -> spin(s, 300);
		IntUnaryOperator second = first.andThen(s -> spin(s + sink, 200)).compose(s -> s + 1);
		for (int i = 0; i < 50; i++)
			sink += second.applyAsInt(i);
		sink += IntStream.range(0, 3000).filter(i -> (i & 3) != 0).map(i -> spin(i, 20)).sum();
	}

	static void calls() {
		Turn[] turns = { new First(), new Second(), new Third(), s -> s * 37 + 1 };
		int s = sink;
		for (int i = 0; i < 3000; i++)
			s = turns[i & 3].twice(s) + turns[s & 3].turn(s);
		sink = s;
	}

	static int thrower(int s, int depth) {
		if (depth == 0) {
			if ((s & 1) == 0)
				throw new Trouble("even");
			return spin(s, 10);
		}
		try {
			return thrower(s + 1, depth - 1);
		} finally {
			sink++;
		}
	}

	static void exceptions() {
		for (int i = 0; i < 300; i++) {
			try {
				sink += thrower(i, i % 20);
			} catch (Trouble trouble) {
				sink += trouble.getMessage().length();
			}
			try {
				sink += ((Object[]) null).length;
			} catch (NullPointerException none) {
				sink++;
			}
		}
	}

	static int guess(Object o, int s) {
		return o instanceof Integer ? (Integer) o + s : o instanceof String ? ((String) o).length() * s : spin(s, 30);
	}

	// What was compiled on a belief is given up when it turns out to be wrong.
	static void deoptimisation() {
		for (int i = 0; i < 20000; i++)
			sink += guess(i, sink);
		for (int i = 0; i < 10; i++)
			sink += guess("text", sink) + guess(lock, sink);
	}

	static void osr() {
		int[] numbers = new int[1000];
		for (int round = 0; round < 200; round++)
			for (int i = 1; i < numbers.length; i++)
				numbers[i] = numbers[i - 1] * 31 + round;
		sink += numbers[999];
	}

	static void natives() throws Exception {
		byte[] from = new byte[1 << 14], to = new byte[1 << 14];
		CRC32 crc = new CRC32();
		for (int i = 0; i < 500; i++) {
			System.arraycopy(from, i % 20, to, 20 - i % 20, from.length - 20);
			Arrays.fill(from, (byte) i);
			crc.update(to);
		}
		sink += (int) crc.getValue() + Arrays.hashCode(from) + (Arrays.equals(from, to) ? 1 : 0);
		for (int i = 0; i < 1000; i++)
			sink += new Object().hashCode() + (int) StrictMath.cbrt(i) + (int) (Math.sin(i) * 10);
		Thread.sleep(1);
	}

	static void strings() {
		StringBuilder text = new StringBuilder();
		Map<String, List<Integer>> map = new LinkedHashMap<>();
		for (int i = 0; i < 2000; i++) {
			text.append(i * 31).append(',');
			map.computeIfAbsent("key" + i % 100, key -> new ArrayList<>()).add(i);
		}
		String[] parts = text.toString().split(",");
		Arrays.sort(parts, (a, b) -> b.compareTo(a));
		sink += parts[0].length() + map.size();
	}

	static void locks() throws Exception {
		for (int i = 0; i < 200; i++) {
			synchronized (lock) {
				sink += spin(i, 50);
			}
			park.lock();
			try {
				sink += spin(i, 50);
			} finally {
				park.unlock();
			}
		}
		synchronized (lock) {
			lock.wait(1);
		}
		LockSupport.parkNanos(100000);
	}

	public static int reflected(int s) {
		return spin(s, 100);
	}

	static void reflection() throws Exception {
		Method method = Shapes.class.getMethod("reflected", int.class);
		MethodHandle handle = MethodHandles.lookup().findStatic(Shapes.class, "reflected",
		                                                        MethodType.methodType(int.class, int.class));
		for (int i = 0; i < 200; i++)
			sink += (Integer) method.invoke(null, i);
		try {
			for (int i = 0; i < 200; i++)
				sink += (int) handle.invokeExact(i);
		} catch (Throwable trouble) {
			throw new IllegalStateException(trouble);
		}
	}

	static void generated() {
		Turn turn = (Turn) Proxy.newProxyInstance(Shapes.class.getClassLoader(), new Class<?>[] { Turn.class },
		                                          (self, method, arguments) -> spin((Integer) arguments[0], 200));
		for (int i = 0; i < 200; i++)
			sink += turn.turn(i);
	}

	// Another thread wants the same monitor.
	static void contend() {
		while (!isOver) {
			synchronized (lock) {
				spin(1, 20000);
			}
			LockSupport.parkNanos(300000);
		}
	}

	static void one(String shape) throws Exception {
		switch (shape) {
		case "recursion": recursion(); break;
		case "mutual": mutual(); break;
		case "lambdas": lambdas(); break;
		case "calls": calls(); break;
		case "exceptions": exceptions(); break;
		case "deoptimisation": deoptimisation(); break;
		case "osr": osr(); break;
		case "natives": natives(); break;
		case "strings": strings(); break;
		case "locks": locks(); break;
		case "reflection": reflection(); break;
		case "generated": generated(); break;
		default: throw new IllegalArgumentException("no such shape: " + shape);
		}
	}

	static void run(long end, String[] shapes) throws Exception {
		while (System.nanoTime() < end)
			for (String shape : shapes)
				one(shape);
	}

	public static void main(String[] arguments) throws Exception {
		long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1000000000L;
		String[] shapes = Arrays.copyOfRange(arguments, 1, arguments.length);
		if (shapes.length == 0)
			shapes = new String[] { "recursion", "mutual", "lambdas", "calls", "exceptions", "deoptimisation", "osr",
				                "natives", "strings", "locks", "reflection", "generated" };
		Thread other = new Thread(Shapes::contend, "contender");
		other.setDaemon(true);
		other.start();
		run(end, shapes);
		isOver = true;
		System.out.println(sink);
	}
}
