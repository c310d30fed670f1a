// SPDX-License-Identifier: Apache-2.0
// Virtual threads, "virtual-N": they compute under outer() and inner(), sleep 0 to 49 calls deep, and go on.
// Arguments: seconds, how many (10000). For Java 21 and newer.
import java.time.Duration;

public class Virtual {
	private static volatile boolean isOver;
	private static volatile int sink;

	static int inner(int s) {
		for (int i = 0; i < 20000; i++)
			s = s * 31 + (i ^ s >>> 7);
		return s;
	}

	static int outer(int s) {
		return inner(s) + 1;
	}

	static int deep(int s, int depth) throws InterruptedException {
		if (depth == 0) {
			Thread.sleep(Duration.ofMillis(1)); // what lies above is frozen, and thawed frame by frame
			return outer(s);
		}
		return deep(s + depth, depth - 1) + outer(s);
	}

	static void work(int number) {
		int s = number;
		try {
			while (!isOver) {
				s = deep(s, number % 50);
				Thread.sleep(Duration.ofMillis(50));
			}
		} catch (InterruptedException end) {
			Thread.currentThread().interrupt();
		}
		sink = s;
	}

	public static void main(String[] arguments) throws Exception {
		int many = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 10000;
		for (int i = 0; i < many; i++) {
			int number = i;
			Thread.ofVirtual().name("virtual-" + i).start(() -> work(number));
		}
		System.out.println("ready");
		System.out.flush();
		Thread.sleep(1000L * Integer.parseInt(arguments[0]));
		isOver = true;
	}
}
