// SPDX-License-Identifier: Apache-2.0
// Six functions within each other, which C2 compiles into one; each turns as often as its number says, so hotN has N
// of 21 parts of the time by itself. Argument: seconds. -XX:-Inline: the same as six methods.
public class Six {
	private static final int ROUNDS = 2000;
	private static int one = 1; // what is not known to be that is a loop which C2 leaves as it is, with a safepoint's poll

	static int hot6(int s) {
		for (int i = 0; i < 6 * ROUNDS; i += one)
			s = s * 31 + (i ^ s >>> 7);
		return s;
	}

	static int hot5(int s) {
		for (int i = 0; i < 5 * ROUNDS; i += one)
			s = s * 31 + (i ^ s >>> 7);
		return hot6(s) + 1;
	}

	static int hot4(int s) {
		for (int i = 0; i < 4 * ROUNDS; i += one)
			s = s * 31 + (i ^ s >>> 7);
		return hot5(s) + 1;
	}

	static int hot3(int s) {
		for (int i = 0; i < 3 * ROUNDS; i += one)
			s = s * 31 + (i ^ s >>> 7);
		return hot4(s) + 1;
	}

	static int hot2(int s) {
		for (int i = 0; i < 2 * ROUNDS; i += one)
			s = s * 31 + (i ^ s >>> 7);
		return hot3(s) + 1;
	}

	static int hot1(int s) {
		for (int i = 0; i < ROUNDS; i += one)
			s = s * 31 + (i ^ s >>> 7);
		return hot2(s) + 1;
	}

	public static void main(String[] arguments) {
		long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1000000000L;
		int s = 1;
		while (System.nanoTime() < end)
			s = hot1(s);
		System.out.println(s);
	}
}
