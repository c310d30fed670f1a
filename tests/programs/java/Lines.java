// SPDX-License-Identifier: Apache-2.0
// Ten lines of one function; each turns as often as the number in it says, so that line has as many of 55 parts of the
// time. Prints which lines these are first. Argument: seconds.
public class Lines {
	private static final int ROUNDS = 2000;
	private static final int FIRST = 10; // the line of the first one
	private static int one = 1; // see Six

	static int hot(int s) {
		for (int i = 0; i < 1 * ROUNDS; i += one) s = s * 31 + (i ^ s >>> 7);
		for (int i = 0; i < 2 * ROUNDS; i += one) s = s * 31 + (i ^ s >>> 7);
		for (int i = 0; i < 3 * ROUNDS; i += one) s = s * 31 + (i ^ s >>> 7);
		for (int i = 0; i < 4 * ROUNDS; i += one) s = s * 31 + (i ^ s >>> 7);
		for (int i = 0; i < 5 * ROUNDS; i += one) s = s * 31 + (i ^ s >>> 7);
		for (int i = 0; i < 6 * ROUNDS; i += one) s = s * 31 + (i ^ s >>> 7);
		for (int i = 0; i < 7 * ROUNDS; i += one) s = s * 31 + (i ^ s >>> 7);
		for (int i = 0; i < 8 * ROUNDS; i += one) s = s * 31 + (i ^ s >>> 7);
		for (int i = 0; i < 9 * ROUNDS; i += one) s = s * 31 + (i ^ s >>> 7);
		for (int i = 0; i < 10 * ROUNDS; i += one) s = s * 31 + (i ^ s >>> 7);
		return s;
	}

	public static void main(String[] arguments) {
		System.out.println("first line " + FIRST);
		System.out.flush();
		long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1000000000L;
		int s = 1;
		while (System.nanoTime() < end)
			s = hot(s);
		System.out.println(s);
	}
}
