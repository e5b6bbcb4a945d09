/* SPDX-License-Identifier: Apache-2.0 */
/* The lowest magnitude is above 0: orders below it share the row in the middle. */
BEGIN
{
	@a = llquantize(5, 2, 3, 4, 8);
	@a = llquantize(17, 2, 3, 4, 8);
	@a = llquantize(-9, 2, 3, 4, 8);
	@b = llquantize(3, 4, 1, 3, 2);
	@b = llquantize(200, 4, 1, 3, 2);
	@b = llquantize(-1000, 4, 1, 3, 2);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
             -10 |                                         0        
              -8 |@@@@@@@@@@@@@                            1        
       abs() < 8 |@@@@@@@@@@@@@                            1        
               8 |                                         0        
              10 |                                         0        
              12 |                                         0        
              14 |                                         0        
              16 |@@@@@@@@@@@@@                            1        
              20 |                                         0        


           value  ------------- Distribution ------------- count    
         <= -256 |@@@@@@@@@@@@@                            1        
            -128 |                                         0        
             -64 |                                         0        
             -32 |                                         0        
             -16 |                                         0        
              -8 |                                         0        
              -4 |                                         0        
       abs() < 4 |@@@@@@@@@@@@@                            1        
               4 |                                         0        
               8 |                                         0        
              16 |                                         0        
              32 |                                         0        
              64 |                                         0        
             128 |@@@@@@@@@@@@@                            1        
          >= 256 |                                         0        

*/
